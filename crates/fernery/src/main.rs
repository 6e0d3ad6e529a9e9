//! A durable control plane for bounded work, in one binary.

fn main() {}
