//! The report: one self-contained page, in light and dark, for screens of any width.

pub(crate) mod figures;
mod page;

pub(crate) use page::page;
