//! The library as C programs use it: its header, its symbols, the examples, and wrong calls.

mod built;
mod header;
mod programs;
