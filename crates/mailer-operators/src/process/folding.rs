//! Values per key that elements are folded into.

use super::context::{Context, Scope};
use super::life::Ttl;
use super::states::KeyedState;
use super::value::Value;
use mailer_core::Result;
use mailer_state::{StateId, StateStore};
use serde::{Serialize, de::DeserializeOwned};

/// Combines all values added under a key into one of the same type: a field of a process function.
///
/// ```
/// use mailer_operators::process::Reducing;
/// let highest = Reducing::<u64>::new(|highest, value| *highest = value.max(*highest));
/// # let _ = highest;
/// ```
pub struct Reducing<V> {
    value: Value<V>,
    reduce: fn(&mut V, V),
}

/// A clone is for another worker: it is not open.
impl<V> Clone for Reducing<V> {
    fn clone(&self) -> Self {
        Self { value: Value::default(), reduce: self.reduce }
    }
}

impl<V: Serialize + DeserializeOwned + Send + 'static> Reducing<V> {
    /// `reduce` folds a value into what there is; the first value is taken as it is.
    pub fn new(reduce: fn(&mut V, V)) -> Self {
        Self { value: Value::default(), reduce }
    }

    /// Adds a value.
    #[inline]
    pub fn add<K, O>(&mut self, cx: &mut Context<'_, K, O>, value: V) -> Result<()> {
        self.value.fold(cx, value, self.reduce)
    }

    /// The combined value.
    pub fn get<K, O>(&mut self, cx: &mut Context<'_, K, O>) -> Result<Option<&V>> {
        self.value.get(cx)
    }

    /// Removes it.
    pub fn clear<K, O>(&mut self, cx: &mut Context<'_, K, O>) -> Result<()> {
        self.value.clear(cx)
    }
}

/// Folds elements of type `E` into an accumulator per key, which begins as `A::default()`: a field of a process function.
///
/// ```
/// use mailer_operators::process::Aggregating;
/// let mean = Aggregating::<(f64, u32), f64>::new(|(sum, count), price| {
///     *sum += price;
///     *count += 1;
/// });
/// # let _ = mean;
/// ```
pub struct Aggregating<A, E> {
    accumulator: Value<A>,
    add: fn(&mut A, E),
}

/// A clone is for another worker: it is not open.
impl<A, E> Clone for Aggregating<A, E> {
    fn clone(&self) -> Self {
        Self { accumulator: Value::default(), add: self.add }
    }
}

impl<A: Serialize + DeserializeOwned + Default + Send + 'static, E> Aggregating<A, E> {
    /// `add` folds an element into the accumulator.
    pub fn new(add: fn(&mut A, E)) -> Self {
        Self { accumulator: Value::default(), add }
    }

    /// Adds an element.
    #[inline]
    pub fn add<K, O>(&mut self, cx: &mut Context<'_, K, O>, element: E) -> Result<()> {
        self.accumulator.update(cx, |accumulator| (self.add)(accumulator, element))
    }

    /// The accumulator.
    pub fn get<K, O>(&mut self, cx: &mut Context<'_, K, O>) -> Result<Option<&A>> {
        self.accumulator.get(cx)
    }

    /// Removes it.
    pub fn clear<K, O>(&mut self, cx: &mut Context<'_, K, O>) -> Result<()> {
        self.accumulator.clear(cx)
    }
}

/// Both are a value to the store.
macro_rules! stored_as_a_value {
    ($type:ident<$($parameter:ident),*>, $field:ident: $value:ident) => {
        impl<$($parameter),*> KeyedState for $type<$($parameter),*>
        where
            $value: Serialize + DeserializeOwned + Send + 'static,
        {
            fn open(&mut self, id: StateId, key_groups: u16, ttl: Option<Ttl>) {
                self.$field.open(id, key_groups, ttl);
            }

            fn write_back(&mut self, store: &mut dyn StateStore) -> Result<()> {
                self.$field.write_back(store)
            }

            fn expire(&mut self, user: &[u8], scope: &mut Scope<'_>) -> Result<()> {
                self.$field.expire(user, scope)
            }
        }
    };
}
stored_as_a_value!(Reducing<V>, value: V);
stored_as_a_value!(Aggregating<A, E>, accumulator: A);
