//! What kind of address a name resolves to. If somebody else chooses where a call goes, it must not reach this machine's own
//! network. A key that is sent without TLS must not leave this machine's network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What kind of address it is, seen from this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// An address of the public network.
    Public,
    /// This machine, a private network, or a form that may lead there; with its name.
    Nearby(&'static str),
    /// An address of no single receiver; with its name.
    Nowhere(&'static str),
}

/// Judges an address. Forms that carry an IPv4 address inside are never public: what they lead to is decided elsewhere.
pub(crate) fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) => reach_v4(address),
        IpAddr::V6(address) => reach_v6(address),
    }
}

fn reach_v4(address: Ipv4Addr) -> Reach {
    use Reach::{Nearby, Nowhere, Public};
    match address.octets() {
        // Linux treats 0.0.0.0 as this machine.
        [0, ..] => Nowhere("unspecified"),
        [127, ..] => Nearby("loopback"),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Nearby("private"),
        [100, 64..=127, ..] => Nearby("carrier-grade NAT"),
        // Among them the metadata services of clouds, which give out credentials.
        [169, 254, ..] => Nearby("link-local"),
        [192, 0, 0, _] => Nearby("protocol assignment"),
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Nowhere("documentation"),
        [192, 88, 99, _] => Nearby("6to4 relay"),
        [198, 18..=19, ..] => Nearby("benchmarking"),
        [224..=239, ..] => Nowhere("multicast"),
        [255, 255, 255, 255] => Nowhere("broadcast"),
        [240..=255, ..] => Nowhere("reserved"),
        _ => Public,
    }
}

fn reach_v6(address: Ipv6Addr) -> Reach {
    use Reach::{Nearby, Nowhere, Public};
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Nowhere("unspecified"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Nearby("loopback"),
        [0, 0, 0, 0, 0, 0xffff, ..] => Nearby("IPv4-mapped"),
        [0, 0, 0, 0, 0xffff, 0, ..] => Nearby("IPv4-translated"),
        [0, 0, 0, 0, 0, 0, ..] => Nearby("IPv4-compatible"),
        [0x64, 0xff9b, 0, 0, 0, 0, ..] | [0x64, 0xff9b, 1, ..] => Nearby("NAT64"),
        [0x100, 0, 0, 0, ..] => Nowhere("discard"),
        [0x2001, 0, ..] => Nearby("Teredo"),
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Nowhere("documentation"),
        [0x2001, 0..=0x1ff, ..] => Nearby("protocol assignment"),
        [0x2002, ..] => Nearby("6to4"),
        [0xfc00..=0xfdff, ..] => Nearby("unique local"),
        [0xfe80..=0xfebf, ..] => Nearby("link-local"),
        [0xfec0..=0xfeff, ..] => Nearby("site-local"),
        [0xff00..=0xffff, ..] => Nowhere("multicast"),
        // 2000::/3: the only part that has been assigned so far.
        [0x2000..=0x3fff, ..] => Public,
        _ => Nowhere("reserved"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_range_ends_where_it_should() {
        let table = [
            ("0.0.0.0", "unspecified"),
            ("0.255.255.255", "unspecified"),
            ("1.0.0.0", ""),
            ("9.255.255.255", ""),
            ("10.0.0.0", "private"),
            ("10.255.255.255", "private"),
            ("11.0.0.0", ""),
            ("100.63.255.255", ""),
            ("100.64.0.0", "carrier-grade NAT"),
            ("100.127.255.255", "carrier-grade NAT"),
            ("100.128.0.0", ""),
            ("127.0.0.1", "loopback"),
            ("127.255.255.254", "loopback"),
            ("169.254.169.254", "link-local"),
            ("172.15.255.255", ""),
            ("172.16.0.0", "private"),
            ("172.31.255.255", "private"),
            ("172.32.0.0", ""),
            ("192.0.0.192", "protocol assignment"),
            ("192.0.2.1", "documentation"),
            ("192.88.99.1", "6to4 relay"),
            ("192.167.255.255", ""),
            ("192.168.0.1", "private"),
            ("198.18.0.1", "benchmarking"),
            ("198.51.100.7", "documentation"),
            ("203.0.113.9", "documentation"),
            ("223.255.255.255", ""),
            ("224.0.0.1", "multicast"),
            ("239.255.255.255", "multicast"),
            ("240.0.0.1", "reserved"),
            ("255.255.255.255", "broadcast"),
            ("::", "unspecified"),
            ("::1", "loopback"),
            ("::2", "IPv4-compatible"),
            ("::127.0.0.1", "IPv4-compatible"),
            ("::ffff:127.0.0.1", "IPv4-mapped"),
            ("::ffff:8.8.8.8", "IPv4-mapped"),
            ("::ffff:0:127.0.0.1", "IPv4-translated"),
            ("64:ff9b::7f00:1", "NAT64"),
            ("64:ff9b:1::7f00:1", "NAT64"),
            ("100::1", "discard"),
            ("2001::1", "Teredo"),
            ("2001:20::1", "protocol assignment"),
            ("2001:200::1", ""),
            ("2001:db8::1", "documentation"),
            ("2001:4860:4860::8888", ""),
            ("2002:7f00:1::", "6to4"),
            ("3fff::1", "documentation"),
            ("2606:4700::1111", ""),
            ("fc00::1", "unique local"),
            ("fdff::1", "unique local"),
            ("fe80::1", "link-local"),
            ("fec0::1", "site-local"),
            ("ff02::1", "multicast"),
            ("4000::1", "reserved"),
        ];
        for (address, name) in table {
            let told = match reach(address.parse().expect("an address")) {
                Reach::Public => "",
                Reach::Nearby(name) | Reach::Nowhere(name) => name,
            };
            assert_eq!(told, name, "{address}");
        }
    }
}
