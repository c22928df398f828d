//! Tables, which get their columns one by one.

use super::Medium;

/// A table. Cells are as the text has them; the page typesets those that hold numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    /// What it is called.
    pub(crate) name: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    /// What must be known of it, in sentences.
    pub(crate) notes: Vec<String>,
    /// Minimum widths of the text's columns, one space apart; `None`: as wide as their contents, two spaces apart.
    pub(crate) widths: Option<&'static [usize]>,
    /// Whether the page shows it at once, however long it is.
    pub(crate) is_open: bool,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    pub(super) heading: Heading,
    /// Words start on the left; numbers end on the right.
    pub(crate) is_word: bool,
    pub(super) medium: Medium,
}

/// What a column is called, and what a flat text calls it if that is something else, over several lines if need be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Heading(pub(super) String, pub(super) Option<String>);

impl From<&str> for Heading {
    fn from(heading: &str) -> Self {
        Heading(heading.to_owned(), None)
    }
}

impl From<String> for Heading {
    fn from(heading: String) -> Self {
        Heading(heading, None)
    }
}

impl<T: Into<String>> From<(T, &str)> for Heading {
    fn from((heading, short): (T, &str)) -> Self {
        Heading(heading.into(), Some(short.to_owned()))
    }
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) weight: Weight,
    pub(crate) cells: Vec<String>,
    /// Where its first cell leads, on the page.
    pub(crate) link: Option<Link>,
    /// The columns whose cells stand out on the page.
    pub(crate) warned: Vec<usize>,
}

/// A place on a page.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Link {
    /// The report that it is in, where there are several; `None`: the same one.
    pub(crate) part: Option<&'static str>,
    /// The heading of a section or a table.
    pub(crate) heading: String,
}

/// What a row is among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    Plain,
    /// It says nothing.
    Void,
    /// Its right part, beside the published figures, says nothing.
    VoidRight,
    /// The sum of the rows that follow.
    Total,
    VoidTotal,
}

impl Weight {
    /// A row that says nothing unless it is `valid`.
    pub(crate) fn of(valid: bool) -> Self {
        if valid { Weight::Plain } else { Weight::Void }
    }

    pub(super) fn is_total(self) -> bool {
        matches!(self, Weight::Total | Weight::VoidTotal)
    }
}

impl Table {
    /// A table with a row for each of these, to which columns are added.
    pub(crate) fn of<R>(name: impl Into<String>, rows: impl IntoIterator<Item = R>) -> Filling<R> {
        let of: Vec<R> = rows.into_iter().collect();
        let row = Row { weight: Weight::Plain, cells: Vec::new(), link: None, warned: Vec::new() };
        let rows = vec![row; of.len()];
        let table = Table {
            name: name.into(),
            columns: Vec::new(),
            rows,
            notes: Vec::new(),
            widths: None,
            is_open: false,
        };
        Filling { table, of }
    }

    /// The numbers of the columns that a medium shows.
    pub(super) fn shown(&self, medium: Medium) -> Vec<usize> {
        (0..self.columns.len()).filter(|&index| self.columns[index].medium.is_on(medium)).collect()
    }
}

/// A table that gets its columns one by one, and what its rows are of. A column has its heading beside what it says of
/// a row.
pub(crate) struct Filling<R> {
    table: Table,
    of: Vec<R>,
}

impl<R> Filling<R> {
    /// Adds a column of numbers.
    pub(crate) fn number<T: ToString>(self, heading: impl Into<Heading>, cell: impl Fn(&R) -> T) -> Self {
        self.number_on(Medium::Both, heading, cell)
    }

    /// Adds a column of numbers that one of them shows.
    pub(crate) fn number_on<T: ToString>(
        self,
        medium: Medium,
        heading: impl Into<Heading>,
        cell: impl Fn(&R) -> T,
    ) -> Self {
        self.add(Column { heading: heading.into(), is_word: false, medium }, cell)
    }

    /// Adds a column of words.
    pub(crate) fn words<T: ToString>(self, heading: impl Into<Heading>, cell: impl Fn(&R) -> T) -> Self {
        self.add(Column { heading: heading.into(), is_word: true, medium: Medium::Both }, cell)
    }

    /// Adds a column of words that one of them shows.
    pub(crate) fn words_on<T: ToString>(
        self,
        medium: Medium,
        heading: impl Into<Heading>,
        cell: impl Fn(&R) -> T,
    ) -> Self {
        self.add(Column { heading: heading.into(), is_word: true, medium }, cell)
    }

    /// Adds a column of numbers for each key.
    pub(crate) fn each<K, H: Into<Heading>, T: ToString>(
        self,
        keys: impl IntoIterator<Item = K>,
        heading: impl Fn(&K) -> H,
        cell: impl Fn(&R, &K) -> T,
    ) -> Self {
        keys.into_iter().fold(self, |filling, key| filling.number(heading(&key), |row| cell(row, &key)))
    }

    fn add<T: ToString>(mut self, column: Column, cell: impl Fn(&R) -> T) -> Self {
        self.table.columns.push(column);
        for (row, of) in self.table.rows.iter_mut().zip(&self.of) {
            row.cells.push(cell(of).to_string());
        }
        self
    }

    /// Says what each row is among the others.
    pub(crate) fn weighed(mut self, weight: impl Fn(&R) -> Weight) -> Self {
        self.table.rows.iter_mut().zip(&self.of).for_each(|(row, of)| row.weight = weight(of));
        self
    }

    /// Says where the first cell of each row leads.
    pub(crate) fn linked(mut self, link: impl Fn(&R) -> Link) -> Self {
        self.table.rows.iter_mut().zip(&self.of).for_each(|(row, of)| row.link = Some(link(of)));
        self
    }

    /// The page shows it at once, however long it is.
    pub(super) fn open(mut self) -> Self {
        self.table.is_open = true;
        self
    }

    /// Cells of which that `is_warned` stand out on the page.
    pub(super) fn warned(mut self, is_warned: impl Fn(&str) -> bool) -> Self {
        for row in &mut self.table.rows {
            let cells = row.cells.iter().enumerate();
            row.warned = cells.filter(|(_, cell)| is_warned(cell)).map(|(index, _)| index).collect();
        }
        self
    }

    /// The table.
    pub(crate) fn table(self) -> Table {
        self.table
    }

    /// The table with these sentences below it.
    pub(crate) fn noted(self, notes: impl IntoIterator<Item = impl Into<String>>) -> Table {
        Table { notes: notes.into_iter().map(Into::into).collect(), ..self.table }
    }
}

/// What stands in a table where there is no value; the page has a dash for it.
pub(crate) const ABSENT: &str = "-";

pub(crate) fn or_absent(value: Option<impl ToString>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), |value| value.to_string())
}

/// A value, or nothing where there is none.
pub(crate) fn or_empty(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}
