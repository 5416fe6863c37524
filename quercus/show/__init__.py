"""What notebooks, the report and the studio show: trees as SVG, matches over time, values as text."""
