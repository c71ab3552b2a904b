"""What clusters are: names, columns and words that set them apart, rows near their centroids."""
