"""What a person runs: the pytest plugin, the command line, reports, the ledger, sweeps; and trials of the suite."""
