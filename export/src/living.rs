//! Values of only those actors that currently have one. Usually, of two million user threads only few live at the same
//! time.

/// Values for some of many indices. It takes four bytes for each index, and memory for the largest number of values at
/// one time.
#[derive(Debug)]
pub(crate) struct Living<T> {
    /// The position of each index's value in `values`, or [`NONE`].
    places: Vec<u32>,
    values: Vec<Option<T>>,
    /// Positions without a value.
    free: Vec<u32>,
}

/// Not a position: there are fewer.
const NONE: u32 = u32::MAX;

impl<T> Living<T> {
    /// `len` indices without values.
    pub(crate) fn new(len: usize) -> Living<T> {
        Living { places: vec![NONE; len], values: Vec::new(), free: Vec::new() }
    }

    /// The value of an index.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.values.get_mut(self.places[index] as usize)?.as_mut()
    }

    /// The value of an index. If it has none, `new` makes it.
    #[inline]
    pub(crate) fn get_or_insert_with(&mut self, index: usize, new: impl FnOnce() -> T) -> &mut T {
        let place = self.place(index);
        self.values[place].get_or_insert_with(new)
    }

    /// Sets or removes the value of an index. Returns the previous value.
    #[inline]
    pub(crate) fn replace(&mut self, index: usize, value: Option<T>) -> Option<T> {
        if value.is_none() {
            return self.remove(index);
        }
        let place = self.place(index);
        std::mem::replace(&mut self.values[place], value)
    }

    /// Removes the value of an index.
    #[inline]
    pub(crate) fn remove(&mut self, index: usize) -> Option<T> {
        let place = std::mem::replace(&mut self.places[index], NONE);
        let removed = self.values.get_mut(place as usize)?.take();
        self.free.push(place);
        removed
    }

    #[inline]
    fn place(&mut self, index: usize) -> usize {
        let place = &mut self.places[index];
        if *place == NONE {
            *place = self.free.pop().unwrap_or_else(|| {
                self.values.push(None);
                self.values.len() as u32 - 1
            });
        }
        *place as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_those_that_are_gone_are_used_again() {
        let mut living = Living::new(1000);
        for index in 0..1000 {
            assert_eq!(living.replace(index, Some(index)), None);
            assert_eq!(living.replace(index, Some(index + 1)), Some(index));
            assert_eq!(*living.get_or_insert_with(index, || 0), index + 1);
            if index >= 3 {
                assert_eq!(living.remove(index - 3), Some(index - 2));
                assert_eq!((living.remove(index - 3), living.get_mut(index - 3)), (None, None));
            }
        }
        assert_eq!((living.get_mut(998).copied(), living.replace(998, None)), (Some(999), Some(999)));
        assert_eq!(living.values.len(), 4);
    }
}
