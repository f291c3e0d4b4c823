"""The reference as a site of static pages: C headers, Python packages, manual pages, and the pages of docs/."""
