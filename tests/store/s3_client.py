# SPDX-License-Identifier: Apache-2.0
"""What tests do with a bucket behind the product's back: a client of S3 that shares no code with it,
signed with AWS Signature Version 4."""

import datetime
import hashlib
import hmac
import http.client
import os
import urllib.parse
import xml.etree.ElementTree as ElementTree


class Bucket:
    def __init__(self, name, environment=None):
        environment = environment or os.environ
        self.host = environment["AWS_ENDPOINT_URL_S3"].removeprefix("http://")
        self.user = environment["AWS_ACCESS_KEY_ID"]
        self.key = environment["AWS_SECRET_ACCESS_KEY"]
        self.name = name

    def request(self, method, name="", query=None, body=b""):
        path = urllib.parse.quote(f"/{self.name}/{name}" if name else f"/{self.name}")
        text = "&".join(f"{key}={urllib.parse.quote(value, safe='')}"
                        for key, value in sorted((query or {}).items()))
        moment = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        digest = hashlib.sha256(body).hexdigest()
        headers = {"host": self.host, "x-amz-content-sha256": digest, "x-amz-date": moment}
        signed = ";".join(headers)
        canonical = "\n".join([method, path, text,
                               *(f"{key}:{value}" for key, value in headers.items()),
                               "", signed, digest])
        scope = [moment[:8], "us-east-1", "s3", "aws4_request"]
        to_sign = "\n".join(["AWS4-HMAC-SHA256", moment, "/".join(scope),
                             hashlib.sha256(canonical.encode()).hexdigest()])
        key = f"AWS4{self.key}".encode()
        for part in [*scope, to_sign]:
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        headers["authorization"] = (f"AWS4-HMAC-SHA256 Credential={self.user}/{'/'.join(scope)},"
                                    f"SignedHeaders={signed},Signature={key.hex()}")
        connection = http.client.HTTPConnection(self.host, timeout=60)
        connection.request(method, path + (f"?{text}" if text else ""), body, headers)
        answer = connection.getresponse()
        content = answer.read()
        if answer.status >= 300:
            raise OSError(f"{method} {path}: {answer.status} {content}")
        return content

    def make(self):
        self.request("PUT")

    def put(self, name, body):
        self.request("PUT", name, body=body)

    def get(self, name):
        return self.request("GET", name)

    def list(self, prefix):
        root = ElementTree.fromstring(self.request("GET", query={"list-type": "2", "prefix": prefix}))
        space = root.tag.removesuffix("ListBucketResult")
        return [each.text for each in root.iter(f"{space}Key")]
