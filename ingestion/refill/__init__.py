"""The work of a change of model: stored chunks get vectors in another space while the old one answers."""
