"""Properties: what a conforming backend must satisfy, one test module per chapter of the specification."""
