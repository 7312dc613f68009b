//! Links the pure crates without `std`.
//!
//! This library has its own panic handler, and a program can have only one. If `std` enters the
//! dependencies of a pure crate, by a crate or by a feature of one, it brings its own. The build
//! then fails with "found duplicate lang item `panic_impl`". The compiler therefore proves purity,
//! on any machine, without another target's standard library.
//!
//! `scripts/purity.sh` builds it alone (to exclude other crates' features) and aborting on panic
//! (unwinding needs `std`). It then builds once more with a crate that does use `std`, which must
//! fail.
#![cfg_attr(all(feature = "check", panic = "abort"), no_std)]

#[cfg(all(feature = "check", panic = "abort"))]
mod without_std {
    extern crate comity_congestion as _;
    extern crate comity_frames as _;
    #[cfg(feature = "prove-it")]
    extern crate comity_impostor as _;
    extern crate comity_link as _;
    extern crate comity_tcp as _;
    extern crate comity_transport as _;
    extern crate comity_units as _;

    use core::alloc::{GlobalAlloc, Layout};
    use core::panic::PanicInfo;
    use core::ptr::null_mut;

    #[panic_handler]
    fn halt(_: &PanicInfo<'_>) -> ! {
        loop {}
    }

    /// Has no memory. Nothing here runs; `alloc` only has to link.
    struct Exhausted;

    // SAFETY: null is the contract's value for "no memory", so nothing is ever freed.
    unsafe impl GlobalAlloc for Exhausted {
        unsafe fn alloc(&self, _: Layout) -> *mut u8 {
            null_mut()
        }

        unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
    }

    #[global_allocator]
    static ALLOCATOR: Exhausted = Exhausted;
}
