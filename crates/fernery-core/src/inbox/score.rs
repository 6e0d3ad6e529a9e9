//! How pressing something is.
