"""The mutation bench: models with known faults, and what `assay check` says of them."""
