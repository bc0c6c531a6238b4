//! Waits for responses outside an async runtime.

/// Waits for a response. The models of the test contexts execute on threads of their own.
pub fn block_on<T>(response: impl Future<Output = T>) -> T {
    static RUNTIME: std::sync::LazyLock<tokio::runtime::Runtime> = std::sync::LazyLock::new(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap_or_else(|e| panic!("no runtime: {e}"))
    });
    RUNTIME.block_on(response)
}
