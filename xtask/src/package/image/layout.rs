//! The files of an OCI image layout: blobs by their digests, and the index of the images.

use super::layer::{Layer, digest};
use crate::command::Result;
use crate::package::architecture;
use crate::python::remove_dir;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// What a container of the image begins with.
pub struct ImageSettings {
    /// The member `config` of the image's configuration.
    pub config: Value,
}

/// A layer that is in the layout.
#[derive(Clone)]
pub struct StoredLayer {
    descriptor: Value,
    diff_id: String,
    about: String,
}

/// The directory, whose index is written last.
pub struct ImageLayout {
    directory: PathBuf,
    manifests: Vec<Value>,
}

impl ImageLayout {
    /// # Errors
    /// The directory cannot be replaced.
    pub fn create(directory: PathBuf) -> Result<Self> {
        remove_dir(&directory)?;
        let blobs = directory.join("blobs/sha256");
        fs::create_dir_all(&blobs)
            .map_err(|e| format!("cannot create {}: {e}", blobs.display()))?;
        Ok(Self { directory, manifests: Vec::new() })
    }

    /// # Errors
    /// The blob cannot be written.
    pub fn put_layer(&self, layer: &Layer) -> Result<StoredLayer> {
        let descriptor = self.put_blob(LAYER, &layer.compressed)?;
        let (diff_id, about) = (layer.diff_id.clone(), layer.about.clone());
        Ok(StoredLayer { descriptor, diff_id, about })
    }

    /// Adds an image under this name.
    ///
    /// # Errors
    /// A blob cannot be written.
    pub fn add_image(
        &mut self,
        name: &str,
        settings: &ImageSettings,
        layers: &[StoredLayer],
    ) -> Result<()> {
        let of_layers = |part: fn(&StoredLayer) -> Value| layers.iter().map(part).collect();
        let diff_ids: Vec<Value> = of_layers(|layer| json!(layer.diff_id));
        let history: Vec<Value> = of_layers(|layer| json!({ "created_by": layer.about }));
        let descriptors: Vec<Value> = of_layers(|layer| layer.descriptor.clone());
        let config = json!({
            "architecture": architecture(),
            "os": "linux",
            "config": settings.config,
            "rootfs": { "type": "layers", "diff_ids": diff_ids },
            "history": history,
        });
        let config = self.put_blob(CONFIG, &to_bytes(&config)?)?;
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config,
            "layers": descriptors,
        });
        let mut descriptor = self.put_blob(MANIFEST, &to_bytes(&manifest)?)?;
        descriptor["platform"] = json!({ "architecture": architecture(), "os": "linux" });
        descriptor["annotations"] = json!({ "org.opencontainers.image.ref.name": name });
        self.manifests.push(descriptor);
        Ok(())
    }

    /// Writes the index. Returns the directory.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn finish(self) -> Result<PathBuf> {
        let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": self.manifests });
        self.write("oci-layout", &to_bytes(&json!({ "imageLayoutVersion": "1.0.0" }))?)?;
        self.write("index.json", &to_bytes(&index)?)?;
        Ok(self.directory)
    }

    /// Writes a blob and returns its descriptor.
    fn put_blob(&self, kind: &str, bytes: &[u8]) -> Result<Value> {
        let digest = digest(bytes);
        self.write(&format!("blobs/{}", digest.replace(':', "/")), bytes)?;
        Ok(json!({ "mediaType": kind, "digest": digest, "size": bytes.len() }))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.directory.join(name);
        fs::write(&path, bytes).map_err(|e| format!("cannot write {}: {e}", path.display()))
    }
}

fn to_bytes(value: &Value) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|e| format!("cannot write JSON: {e}"))
}
