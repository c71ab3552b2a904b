"""The pages of the site, and what builds and checks it."""
