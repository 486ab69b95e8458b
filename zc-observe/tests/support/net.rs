//! Network namespaces of our own, with devices made by `ip`.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::thread;

use nix::sched::{CloneFlags, unshare};

/// Runs the work on a thread in a network namespace of its own, which ends with it.
pub(crate) fn namespace<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        scope
            .spawn(|| {
                unshare(CloneFlags::CLONE_NEWNET).unwrap();
                ip("link set lo up");
                work()
            })
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// `ip` in the namespace of this thread.
pub(crate) fn ip(arguments: &str) {
    let output = Command::new("ip")
        .args(arguments.split(' '))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "ip {arguments}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Makes a device up, with an address and a static neighbour behind it.
pub(crate) fn up(device: &str, address: &str, neighbour: &str) {
    ip(&format!("link set {device} up"));
    ip(&format!("addr add {address} dev {device}"));
    set_neighbour(device, neighbour);
}

/// A permanent ARP entry (`SIOCSARP`), which not every `ip` can make.
pub(crate) fn set_neighbour(device: &str, address: &str) {
    let socket = nix::sys::socket::socket(
        nix::sys::socket::AddressFamily::Inet,
        nix::sys::socket::SockType::Datagram,
        nix::sys::socket::SockFlag::SOCK_CLOEXEC,
        None,
    )
    .unwrap();
    // SAFETY: all zeroes is a valid arpreq.
    let mut request: libc::arpreq = unsafe { std::mem::zeroed() };
    request.arp_pa.sa_family = libc::AF_INET as u16;
    let octets = address.parse::<std::net::Ipv4Addr>().unwrap().octets();
    for (place, octet) in request.arp_pa.sa_data[2..6].iter_mut().zip(octets) {
        *place = octet as libc::c_char;
    }
    request.arp_ha.sa_family = libc::ARPHRD_ETHER;
    for (place, octet) in request.arp_ha.sa_data.iter_mut().zip([2, 0, 0, 0, 0, 9]) {
        *place = octet;
    }
    request.arp_flags = libc::ATF_PERM | libc::ATF_COM;
    for (place, byte) in request.arp_dev.iter_mut().zip(device.bytes()) {
        *place = byte as libc::c_char;
    }
    const SIOCSARP: libc::c_ulong = 0x8955;
    // SAFETY: the request is what this ioctl takes.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCSARP as _, &request) };
    assert_eq!(result, 0, "SIOCSARP: {}", std::io::Error::last_os_error());
}

/// A packet socket for all protocols on a device, as tcpdump opens it; closed when dropped.
pub(crate) fn tap(device: &str) -> OwnedFd {
    let protocol = (libc::ETH_P_ALL as u16).to_be();
    // SAFETY: a plain system call.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, i32::from(protocol)) };
    assert!(fd >= 0, "AF_PACKET: {}", std::io::Error::last_os_error());
    // SAFETY: the kernel has just given us this descriptor.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let index = nix::net::if_::if_nametoindex(device).unwrap();
    // SAFETY: all zeroes is a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol;
    address.sll_ifindex = index as i32;
    // SAFETY: the address is live and of the size given.
    let result = unsafe {
        libc::bind(
            fd.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as u32,
        )
    };
    assert_eq!(result, 0, "bind: {}", std::io::Error::last_os_error());
    fd
}

/// A tun device with a header that permits offloads: without them the kernel copies at
/// send already.
pub(crate) fn tun(name: &str) -> OwnedFd {
    const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
    const TUNSETOFFLOAD: libc::c_ulong = 0x4004_54d0;
    const TUN_F_CSUM: libc::c_ulong = 1;
    const IFF_VNET_HDR: i16 = 0x4000;
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/net/tun")
        .unwrap();
    // SAFETY: all zeroes is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = libc::IFF_TUN as i16 | libc::IFF_NO_PI as i16 | IFF_VNET_HDR;
    // SAFETY: the request is what this ioctl takes.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF as _, &request) };
    assert_eq!(result, 0, "TUNSETIFF: {}", std::io::Error::last_os_error());
    // SAFETY: this ioctl takes a number.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), TUNSETOFFLOAD as _, TUN_F_CSUM) };
    assert_eq!(
        result,
        0,
        "TUNSETOFFLOAD: {}",
        std::io::Error::last_os_error()
    );
    file.into()
}
