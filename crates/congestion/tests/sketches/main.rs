//! The least usual algorithms of the field, as far as they test the shape of the traits.
//!
//! Each sketch is driven through [`comity_congestion::Controller`] and [`comity_congestion::Meter`] alone and
//! reproduces hand-worked numbers of its source. None is the finished algorithm: what is left out stands at
//! the top of each file. See `docs/adr/0003-controller-recovery-meter.md`.

mod iftp;
mod tcp_real;
