"""The Python side of Forkyard: zygote, init and worker."""
