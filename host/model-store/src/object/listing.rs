//! What a listing of an object store says about a repository: its models and their files.

use super::client::StoreClient;
use super::{StoreEntry, message, pages};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore};
use std::collections::BTreeMap;
use tokio_stream::StreamExt;
use trtserver_base::disk::{is_entry, is_ignored};
use trtserver_base::error::{Code, Error, Result};

/// The objects of one model, by path.
#[derive(Default)]
pub struct ModelObjects {
    pub files: BTreeMap<String, ObjectMeta>,
    /// Paths that no file can have, such as `1//weights`. They concern this model only.
    pub unusable: Vec<String>,
}

impl ModelObjects {
    /// The files, if all are usable.
    ///
    /// # Errors
    /// Names a path that no file can have.
    pub fn into_entries(self, model: &str) -> Result<Vec<StoreEntry>> {
        if let Some(path) = self.unusable.first() {
            return Err(Error::invalid(format!(
                "model '{model}': {} keys in its directory are not usable paths, such as {:?}: rename or remove them",
                self.unusable.len(),
                format!("{model}/{path}")
            )));
        }
        Ok(self.files.into_iter().map(|(path, object)| StoreEntry { path, object }).collect())
    }

    fn add(&mut self, path: &str, object: ObjectMeta) {
        let mut parts = path.split('/');
        if parts.clone().any(is_ignored) {
            return;
        }
        match parts.all(is_entry) {
            true => drop(self.files.insert(path.to_owned(), object)),
            false => self.unusable.push(path.to_owned()),
        }
    }

    /// Removes empty objects in place of directories, as web consoles create them.
    fn remove_markers(&mut self) {
        let parents = |path: &String| Some(path.rsplit_once('/')?.0.to_owned());
        let dirs: Vec<String> = self.files.keys().filter_map(parents).collect();
        for dir in dirs {
            if self.files.get(&dir).is_some_and(|object| object.size == 0) {
                self.files.remove(&dir);
            }
        }
    }
}

impl StoreClient {
    /// Names of the model directories, sorted.
    pub async fn models(&self) -> Result<Vec<String>> {
        let prefix = self.prefix("");
        let work = self.store.list_with_delimiter(prefix.as_ref());
        let (listed, unusable) = pages::read_listing(work).await;
        let listed = listed.map_err(|e| self.error("", &e))?;
        self.report_ignored(&unusable);
        let names = listed.common_prefixes.iter().filter_map(|prefix| prefix.filename());
        let is_model = |name: &&str| is_entry(name) && !is_ignored(name);
        let mut names: Vec<String> = names.filter(is_model).map(str::to_owned).collect();
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    pub async fn has(&self, model: &str) -> Result<bool> {
        let mut listed = self.store.list(self.prefix(model).as_ref());
        let (first, unusable) = pages::read_listing(async { listed.next().await }).await;
        let first = first.transpose().map_err(|e| self.error(model, &e))?;
        Ok(first.is_some() || !unusable.is_empty())
    }

    /// The objects of all models, by model.
    pub async fn all_objects(&self) -> Result<BTreeMap<String, ModelObjects>> {
        let (objects, unusable) = self.list_objects("").await?;
        let mut models: BTreeMap<String, ModelObjects> = BTreeMap::new();
        for object in objects {
            if let Some((model, path)) = self.split_key(object.location.as_ref()) {
                let (model, path) = (model.to_owned(), path.to_owned());
                models.entry(model).or_default().add(&path, object);
            }
        }
        let mut ignored = Vec::new();
        for key in unusable {
            match self.split_key(&key) {
                Some((model, path)) => {
                    models.entry(model.to_owned()).or_default().unusable.push(path.to_owned());
                }
                None => ignored.push(key),
            }
        }
        self.report_ignored(&ignored);
        models.values_mut().for_each(ModelObjects::remove_markers);
        Ok(models)
    }

    /// The objects of a model.
    pub async fn objects(&self, model: &str) -> Result<ModelObjects> {
        let (objects, unusable) = self.list_objects(model).await?;
        let mut found = ModelObjects::default();
        for object in objects {
            if let Some((_, path)) = self.split_key(object.location.as_ref()) {
                let path = path.to_owned();
                found.add(&path, object);
            }
        }
        let unusable = unusable.iter().filter_map(|key| self.split_key(key));
        found.unusable.extend(unusable.map(|(_, path)| path.to_owned()));
        if found.files.is_empty() && found.unusable.is_empty() {
            return Err(Error::not_found(format!("'{}/{model}/' has no files", self.url)));
        }
        found.remove_markers();
        Ok(found)
    }

    /// All objects below a directory, and the keys that cannot be paths.
    async fn list_objects(&self, dir: &str) -> Result<(Vec<ObjectMeta>, Vec<String>)> {
        let listed = self.store.list(self.prefix(dir).as_ref());
        let work = listed.collect::<object_store::Result<Vec<_>>>();
        let (objects, unusable) = pages::read_listing(work).await;
        Ok((objects.map_err(|e| self.error(dir, &e))?, unusable))
    }

    /// Model and path of a key; `None` if it is not in a model directory.
    fn split_key<'a>(&self, key: &'a str) -> Option<(&'a str, &'a str)> {
        let (model, path) = key.strip_prefix(&self.url.key(""))?.split_once('/')?;
        (is_entry(model) && !is_ignored(model)).then_some((model, path))
    }

    /// Logs keys that are in no model directory, unless it is what was logged last.
    fn report_ignored(&self, keys: &[String]) {
        let text = keys.first().map(|key| {
            format!("{} keys are ignored, which cannot be paths, such as {key:?}", keys.len())
        });
        let mut reported = self.ignored.lock();
        if let Some(text) = text.as_ref().filter(|text| reported.as_ref() != Some(text)) {
            tracing::warn!("model repository '{}': {text}", self.url);
        }
        *reported = text;
    }

    /// The directory `path` of this repository; `None` for all of the bucket.
    fn prefix(&self, path: &str) -> Option<Path> {
        let key = self.url.key(path);
        Path::parse(key.trim_end_matches('/')).ok().filter(|path| !path.as_ref().is_empty())
    }

    /// The listing of a directory failed.
    fn error(&self, dir: &str, e: &object_store::Error) -> Error {
        let dir = if dir.is_empty() { String::new() } else { format!("{dir}/") };
        let reason = message::describe_store_error(e);
        Error::new(Code::Unavailable, format!("list {}/{dir}: {reason}", self.url))
    }
}
