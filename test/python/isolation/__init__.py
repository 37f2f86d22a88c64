"""Tests of the isolation layers: real forks, really confined."""
