"""What every evaluation uses. It runs in workers that never ran agent code, and is sent there as files."""
