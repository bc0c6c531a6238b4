"""A server with the interface of S3 (moto) on a free port of the loopback address, with the files of FOLDER in a bucket.

Usage: s3_server.py FOLDER. Prints `listening ADDRESS`, and serves until it is killed.
"""

import os
import sys
import threading

import boto3
from moto.server import ThreadedMotoServer


def main():
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    s3 = boto3.client(
        "s3",
        endpoint_url=f"http://{host}:{port}",
        region_name="us-east-1",
        aws_access_key_id="tester",
        aws_secret_access_key="secret",
    )
    s3.create_bucket(Bucket="bucket")
    folder = sys.argv[1]
    for directory, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(directory, name)
            with open(path, "rb") as file:
                s3.put_object(Bucket="bucket", Key=os.path.relpath(path, folder), Body=file.read())
    print(f"listening {host}:{port}", flush=True)
    threading.Event().wait()


main()
