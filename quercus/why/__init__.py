"""Why not? What stopped the matches of a query, with which events, and what would have let the nearest miss through."""
