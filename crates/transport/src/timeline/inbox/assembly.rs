//! One section while it is put together.
