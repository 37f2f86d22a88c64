"""Tests of the Python half; a package, so that a folder of tests may be called what the package it tests is called."""
