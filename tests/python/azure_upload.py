"""Creates the container `container` and uploads the files of FOLDER to it, with the key of the account.

Usage: azure_upload.py ENDPOINT ACCOUNT KEY FOLDER. The endpoint is an emulator's: the account is the first part of the path.
"""

import base64
import email.utils
import hashlib
import hmac
import os
import sys
import urllib.parse
import urllib.request


def put(endpoint, account, key, path, query, headers, body):
    headers = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2021-12-02", **headers}
    length = str(len(body)) if body else ""
    content_type = "application/octet-stream"
    canonical = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    resource = f"/{account}/{account}/{path}" + "".join(f"\n{name}:{query[name]}" for name in sorted(query))
    text = f"PUT\n\n\n{length}\n\n{content_type}\n\n\n\n\n\n\n{canonical}{resource}"
    signature = base64.b64encode(hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()).decode()
    url = f"{endpoint}/{account}/{path}"
    if query:
        url += "?" + urllib.parse.urlencode(query)
    headers["Authorization"] = f"SharedKey {account}:{signature}"
    headers["Content-Type"] = content_type
    with urllib.request.urlopen(urllib.request.Request(url, data=body, headers=headers, method="PUT")) as response:
        assert response.status == 201, response.status


def main():
    endpoint, account, key, folder = sys.argv[1:]
    put(endpoint, account, key, "container", {"restype": "container"}, {}, b"")
    for directory, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(directory, name)
            with open(path, "rb") as file:
                blob = f"container/{os.path.relpath(path, folder)}"
                put(endpoint, account, key, blob, {}, {"x-ms-blob-type": "BlockBlob"}, file.read())


main()
