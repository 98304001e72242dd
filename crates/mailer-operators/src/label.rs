//! What an operator is called, and which one was running when a user function panicked.

use mailer_core::Error;
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

/// The kind of an operator and, where the author gave one, its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// `map`, `filter`, `reduce`, …
    pub kind: &'static str,
    /// The author's name.
    pub name: Option<Arc<str>>,
}

impl Label {
    /// A label without a name.
    pub fn kind(kind: &'static str) -> Self {
        Self { kind, name: None }
    }

    /// A label with the author's name.
    pub fn named(kind: &'static str, name: &str) -> Self {
        Self { kind, name: Some(name.into()) }
    }

    /// Runs user code. A panic in it is remembered under this label for [`take_panic_site`]; the guard costs nothing
    /// otherwise, since only unwinding drops it.
    #[inline]
    pub(crate) fn run<R>(&self, user: impl FnOnce() -> R) -> R {
        let guard = PanicSite(self);
        let result = user();
        std::mem::forget(guard);
        result
    }

    /// An error the user's function returned.
    #[cold]
    pub(crate) fn failed(&self, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::user_function(format!("operator {self} failed")).caused_by(cause)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{} \"{name}\"", self.kind),
            None => f.write_str(self.kind),
        }
    }
}

/// An operator whose label the author can change. A chain renames its last operator.
pub trait Rename {
    /// Sets the name shown by `explain` and in errors.
    fn rename(&mut self, name: &str);
}

/// An operator around one function of the user: the struct, its constructor, and what every such operator can do. By hand
/// because a derived `Clone` would ask for `In: Clone`.
macro_rules! closure_operator {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $function:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name<In, F> {
            label: $crate::Label,
            $function: F,
            input: ::std::marker::PhantomData<fn(In)>,
        }

        impl<In, F> $name<In, F> {
            #[doc = concat!("The operator `", $kind, "` around a function of the user.")]
            pub fn new($function: F) -> Self {
                Self { label: $crate::Label::kind($kind), $function, input: ::std::marker::PhantomData }
            }
        }

        impl<In, F: Clone> Clone for $name<In, F> {
            fn clone(&self) -> Self {
                let $function = self.$function.clone();
                Self { label: self.label.clone(), $function, input: ::std::marker::PhantomData }
            }
        }

        impl<In, F> $crate::Rename for $name<In, F> {
            fn rename(&mut self, name: &str) {
                self.label.name = Some(name.into());
            }
        }
    };
}
pub(crate) use closure_operator;

struct PanicSite<'a>(&'a Label);

impl Drop for PanicSite<'_> {
    #[cold]
    fn drop(&mut self) {
        SITE.with(|site| site.borrow_mut().get_or_insert_with(|| self.0.to_string()).truncate(256));
    }
}

thread_local! {
    static SITE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The operator whose function panicked last on this thread, once.
pub fn take_panic_site() -> Option<String> {
    SITE.with(|site| site.borrow_mut().take())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_leaves_its_label_behind_and_a_success_does_not() {
        let label = Label::named("map", "parse");
        label.run(|| ());
        assert_eq!(take_panic_site(), None);
        let outcome = std::panic::catch_unwind(|| label.run(|| panic!("boom")));
        assert!(outcome.is_err());
        assert_eq!(take_panic_site().as_deref(), Some("map \"parse\""));
        assert_eq!(take_panic_site(), None);
    }
}
