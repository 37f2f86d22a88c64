"""What the service measures in a worker beside agent code; each instrument writes a report of JSON values."""
