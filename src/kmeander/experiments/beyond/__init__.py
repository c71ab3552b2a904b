"""Beyond the paper: kmeander's defaults against the paper's methods and against its peers."""
