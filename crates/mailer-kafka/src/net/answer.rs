//! An answer that is on its way.

use super::Api;
use crate::client::Failure;
use std::marker::PhantomData;

/// The answer to a request that was sent. Dropping it gives up the answer, not the request.
pub(crate) struct Answer<R: Api> {
    request: PhantomData<R>,
}

impl<R: Api> Answer<R> {
    /// Waits for it, at most for the request timeout that the request was sent with.
    pub(crate) async fn wait(self) -> Result<R::Response, Failure> {
        unimplemented!()
    }
}
