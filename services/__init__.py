"""The services of Tokenway and what starts them."""
