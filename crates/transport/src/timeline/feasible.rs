//! Which sections have to go so that the most important ones arrive in time.
