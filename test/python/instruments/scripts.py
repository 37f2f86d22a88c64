"""Scripts as agents may submit them."""

LOADER = """
import torch
from torch.utils.data import DataLoader, TensorDataset

def main():
    data = TensorDataset(torch.arange(64.0))
    print(sum(batch[0].sum().item() for batch in DataLoader(data, batch_size=8, num_workers=2)))

if __name__ == "__main__":
    main()
"""
POOL = """
import multiprocessing, pickle
from dataclasses import dataclass

@dataclass
class Point:
    x: int = 0

def moved(point):
    return Point(point.x + 1)

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(moved, [Point(1), Point(2)]), pickle.loads(pickle.dumps(Point(5))))
"""
LATE = """
import atexit, threading
go_on = threading.Event()
threading.Thread(target=lambda: (go_on.wait(), print("thread"))).start()
atexit.register(print, "at exit")
go_on.set()
print("main", end="")
"""
CHAIN = """
def inner():
    raise ValueError("first")

try:
    inner()
except ValueError:
    1 / 0
"""
CHAIN_TEXT = """Traceback (most recent call last):
  File "train.py", line 6, in <module>
    inner()
  File "train.py", line 3, in inner
    raise ValueError("first")
ValueError: first

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "train.py", line 8, in <module>
    1 / 0
    ~~^~~
ZeroDivisionError: division by zero
"""
MAIN = """
import __main__, sys
x = 1
with open(__file__) as file:
    text = file.read()
print(__name__, __file__, __main__.x, sys.argv, sys.path[0], "import __main__" in text)
"""
DAEMON = """
import os, signal
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(writer, str(os.getpid()).encode())
        signal.pause()
    os._exit(0)
with open("daemon", "wb") as file:
    file.write(os.read(reader, 20))
import torch
torch.Tensor.backward = None
"""
LARGE_DAEMON = """
import os, signal, time
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        kept = bytearray(150 << 20)
        while time.process_time() < 0.3: pass
        os.write(writer, b"done")
        signal.pause()
    os._exit(0)
os.read(reader, 4)
"""
WAITS = """
import os, signal
print("begun", flush=True)
os.kill(os.getppid(), signal.SIGUSR1)
signal.pause()
"""
