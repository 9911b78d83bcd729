"""Reports: what a method gets wrong, as text, data and one page of HTML."""
