//! A durable control plane for bounded work, in one binary.

fn main() -> std::process::ExitCode {
    fernery::cli::main()
}
