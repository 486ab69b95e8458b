#![no_std]
#![no_main]
//! zc-observe's programs in the kernel.

#[cfg(not(test))]
#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
