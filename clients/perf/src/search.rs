//! Which load is measured next: through a range, or by binary search for the highest load within
//! the latency limit. Pure.

/// A range of loads and where the search is in it.
#[derive(Clone, Debug)]
pub struct Search {
    start: f64,
    /// 0: none.
    end: f64,
    step: f64,
    /// Concurrency: loads are whole numbers.
    whole: bool,
    state: SearchState,
}

#[derive(Clone, Copy, Debug)]
enum SearchState {
    Linear {
        next: f64,
    },
    First,
    Last,
    /// The start meets the limit, the end does not.
    Between {
        low: f64,
        high: f64,
        tried: f64,
    },
    Over,
}

impl Search {
    pub fn linear(start: f64, end: f64, step: f64) -> Self {
        Search { start, end, step, whole: false, state: SearchState::Linear { next: start } }
    }

    pub fn binary(start: f64, end: f64, step: f64, whole: bool) -> Self {
        Search { start, end, step, whole, state: SearchState::First }
    }

    /// The first load.
    pub fn first(&self) -> f64 {
        self.start
    }

    /// The load after one that met the limit, or did not.
    pub fn next(&mut self, met: bool) -> Option<f64> {
        let (next, state) = match self.state {
            SearchState::Linear { next } => {
                let next = next + self.step;
                let more = met && (next <= self.end || self.end == 0.0);
                (more.then_some(next), SearchState::Linear { next })
            }
            SearchState::First if met => (Some(self.end), SearchState::Last),
            SearchState::Last if !met => self.between(self.start, self.end),
            SearchState::Between { low, high, tried } => {
                let (low, high) = if met { (tried, high) } else { (low, tried) };
                self.between(low, high)
            }
            SearchState::First | SearchState::Last | SearchState::Over => (None, SearchState::Over),
        };
        self.state = state;
        next
    }

    fn between(&self, low: f64, high: f64) -> (Option<f64>, SearchState) {
        if high - low <= self.step {
            return (None, SearchState::Over);
        }
        let middle = (low + high) / 2.0;
        let tried = if self.whole { middle.floor() } else { middle };
        (Some(tried), SearchState::Between { low, high, tried })
    }
}

#[cfg(test)]
mod tests {
    use super::Search;

    /// The loads that are measured on a server that meets the limit up to `capacity`.
    fn loads(mut search: Search, capacity: f64) -> Vec<f64> {
        let mut loads = vec![search.first()];
        while let Some(next) = search.next(loads.last().is_some_and(|last| *last <= capacity)) {
            loads.push(next);
        }
        loads
    }

    #[test]
    fn ranges_end_at_their_end_or_at_the_limit() {
        assert_eq!(loads(Search::linear(1.0, 8.0, 3.0), 99.0), [1.0, 4.0, 7.0]);
        assert_eq!(loads(Search::linear(1.0, 8.0, 3.0), 2.0), [1.0, 4.0]);
        assert_eq!(loads(Search::linear(4.0, 1.0, 1.0), 99.0), [4.0]);
        assert_eq!(loads(Search::linear(2.0, 0.0, 2.0), 7.0), [2.0, 4.0, 6.0, 8.0]);
    }

    #[test]
    fn binary_search_narrows_down_to_the_step() {
        let whole = |capacity| loads(Search::binary(1.0, 16.0, 1.0, true), capacity);
        assert_eq!(whole(5.0), [1.0, 16.0, 8.0, 4.0, 6.0, 5.0]);
        assert_eq!(whole(0.0), [1.0]);
        assert_eq!(whole(16.0), [1.0, 16.0]);
        let real = loads(Search::binary(10.0, 20.0, 2.0, false), 13.0);
        assert_eq!(real, [10.0, 20.0, 15.0, 12.5, 13.75]);
    }
}
