"""Bodies of S3 answers, as Swift, RGW and SeaweedFS write them, and such as none writes."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from ssbench.store.s3.dialect import (
    find_deletion_faults,
    find_wrong_whole,
    is_bucket_name,
    is_xml_text,
    make_completion_body,
    make_content_md5,
    make_deletion_body,
    make_whole_etag,
    parse_fault,
    parse_listing_page,
    parse_upload_id,
    parse_uploads,
)

NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
HEAD = "<?xml version='1.0' encoding='UTF-8'?>\n"


def listing(
    entries: str, more: str = "<IsTruncated>false</IsTruncated>", namespace: str = NAMESPACE
) -> bytes:
    return f"{HEAD}<ListBucketResult {namespace}><Name>b</Name>{more}{entries}</ListBucketResult>".encode()


def entry(key: str, size: int = 7) -> str:
    return f"<Contents><Key>{key}</Key><ETag>&quot;ab&quot;</ETag><Size>{size}</Size></Contents>"


@pytest.mark.parametrize("namespace", [NAMESPACE, ""])
def test_entries_have_names_and_sizes(namespace: str) -> None:
    page = parse_listing_page(listing(entry("a&amp;b", 0) + entry("ü", 2**40), namespace=namespace))
    assert page.rows == [("a&b", 0), ("ü", 2**40)]
    assert page.following == ""


def test_a_page_that_is_not_the_last_says_what_follows() -> None:
    more = "<IsTruncated>true</IsTruncated><NextContinuationToken>bC8y</NextContinuationToken>"
    assert parse_listing_page(listing(entry("a"), more)).following == "bC8y"
    last = "<IsTruncated>false</IsTruncated><NextContinuationToken>bC8y</NextContinuationToken>"
    assert parse_listing_page(listing(entry("a"), last)).following == ""


def test_prefixes_are_entries_in_the_order_of_bytes() -> None:
    prefixes = "".join(f"<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>" for name in ("b/", "ä/"))
    page = parse_listing_page(listing(entry("a") + entry("z") + prefixes))
    assert [name for name, _ in page.rows] == ["a", "b/", "z", "ä/"]


def test_names_that_xml_cannot_hold_are_encoded() -> None:
    more = "<EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>"
    assert parse_listing_page(listing(entry("a%2Fb+c%20d%01"), more)).rows == [("a/b c d\x01", 7)]


def test_buckets_are_entries_too() -> None:
    body = (
        f"{HEAD}<ListAllMyBucketsResult {NAMESPACE}><Owner><ID>t</ID></Owner><Buckets><Bucket><Name>a</Name>"
        "<CreationDate>2026-01-01</CreationDate></Bucket><Bucket><Name>b</Name></Bucket></Buckets>"
        "</ListAllMyBucketsResult>"
    )
    assert parse_listing_page(body.encode()).rows == [("a", 0), ("b", 0)]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html><body>busy</body></html>",
        b"<html><br></html>",
        b"[]",
        b"<ListBucketResult><Contents><Size>1</Size></Contents></ListBucketResult>",
        listing(entry("a", -1)),
        b"<ListBucketResult><Contents><Key>a</Key><Size>many</Size></Contents></ListBucketResult>",
        listing(entry("a"), "<IsTruncated>true</IsTruncated>"),
        b'<!DOCTYPE a [<!ENTITY b "c">]><ListBucketResult></ListBucketResult>',
        b'<?xml version="1.0" encoding="none"?><ListBucketResult></ListBucketResult>',
        b"<Error><Code>NoSuchBucket</Code></Error>",
    ],
)
def test_what_is_no_listing_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_listing_page(body)


def test_an_error_says_code_message_and_more() -> None:
    fault = parse_fault(
        b"<?xml version='1.0'?><Error><Code>AuthorizationHeaderMalformed</Code><Message>The region\n is"
        b" wrong</Message><Region>us-east-1</Region><RequestId>tx1</RequestId></Error>"
    )
    assert fault is not None
    assert str(fault) == "AuthorizationHeaderMalformed: The region is wrong"
    assert fault.fields["Region"] == "us-east-1"
    assert parse_fault(b"<html>Error</html>") is None
    assert parse_fault(b"<Error><Code>") is None


def test_a_deletion_of_several_names_those_that_failed() -> None:
    body = make_deletion_body([("a&b", ""), ("c", "v<1")])
    assert body == (
        b"<Delete><Quiet>true</Quiet><Object><Key>a&amp;b</Key></Object>"
        b"<Object><Key>c</Key><VersionId>v&lt;1</VersionId></Object></Delete>"
    )
    assert make_content_md5(b"") == "1B2M2Y8AsgTpgAmY7PhCfg=="
    assert find_deletion_faults(f"<DeleteResult {NAMESPACE}></DeleteResult>".encode()) == []
    failed = find_deletion_faults(
        b"<DeleteResult><Deleted><Key>c</Key></Deleted><Error><Key>a</Key><Code>AccessDenied</Code></Error>"
        b"<Error><Key>a</Key><VersionId>2</VersionId><Code>InternalError</Code></Error></DeleteResult>"
    )
    assert [(key, fault.code) for key, fault in failed] == [("a", "AccessDenied"), ("a", "InternalError")]
    # Nothing is known of any object.
    with pytest.raises(ValueError, match="SlowDown"):
        find_deletion_faults(b"<Error><Code>SlowDown</Code></Error>")
    with pytest.raises(ValueError, match="no answer"):
        find_deletion_faults(b"<x/>")


def test_a_deletion_names_keys_as_they_are() -> None:
    """A carriage return as it is would be read as the end of a line, which is another key."""
    keys = ["a\rb", "a\nb", "<&>\"'", "]]>", "a\u0085b", "\U0001f600"]
    assert all(map(is_xml_text, keys))
    read = ElementTree.fromstring(make_deletion_body((key, "") for key in keys)).iterfind("Object/Key")
    assert [each.text for each in read] == keys
    assert not any(map(is_xml_text, ("c\x01d", "\ufffe", "\x7f\x00", "\ud800")))


def test_a_multipart_upload_has_an_id_and_ends_with_the_etags_of_its_parts() -> None:
    answer = (
        f"<InitiateMultipartUploadResult {NAMESPACE}><UploadId>u1</UploadId></InitiateMultipartUploadResult>"
    )
    assert parse_upload_id(answer.encode()) == "u1"
    with pytest.raises(ValueError, match="without the id"):
        parse_upload_id(b"<InitiateMultipartUploadResult/>")
    assert make_completion_body(["a", "b"]) == (
        b'<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>"a"</ETag></Part>'
        b'<Part><PartNumber>2</PartNumber><ETag>"b"</ETag></Part></CompleteMultipartUpload>'
    )
    assert make_completion_body(["a"], ["<="]) == (
        b'<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>"a"</ETag>'
        b"<ChecksumCRC32>&lt;=</ChecksumCRC32></Part></CompleteMultipartUpload>"
    )
    assert make_whole_etag(["d41d8cd98f00b204e9800998ecf8427e"]) == "59adb24ef3cdbe0297f05b395827453f-1"
    with pytest.raises(ValueError, match=r".+"):
        make_whole_etag(["no digest"])
    upload = b"<Upload><Key>a</Key><UploadId>u</UploadId></Upload>"
    listed = b"<ListMultipartUploadsResult>%b</ListMultipartUploadsResult>" % upload
    assert parse_uploads(listed) == [("a", "u")]
    with pytest.raises(ValueError, match="no list"):
        parse_uploads(b"<x/>")


def test_the_etag_of_a_whole_is_that_of_its_parts() -> None:
    part = "d41d8cd98f00b204e9800998ecf8427e"
    right = "&#34;59adb24ef3cdbe0297f05b395827453f-1&#34;"

    def wrong(etag: str, part: str = part) -> str | None:
        body = f"<CompleteMultipartUploadResult><ETag>{etag}</ETag></CompleteMultipartUploadResult>"
        return find_wrong_whole(body.encode(), [part])

    assert wrong(right) is None
    assert wrong("") is None
    assert wrong("another", part="no MD5") is None
    assert "has the ETag another" in (wrong("another") or "")
    assert "no XML" in (find_wrong_whole(b"", [part]) or "")


@pytest.mark.parametrize("name", ["ssbench-000000", "a.b", "ssbench-000000-gold", "abc", "a" * 63])
def test_buckets_have_hyphens_and_periods(name: str) -> None:
    assert is_bucket_name(name)


@pytest.mark.parametrize(
    "name",
    ["ssbench_000000", "Ssbench", "ab", "a" * 64, "-abc", "abc-", "a..b", "a.-b", "192.168.0.1", "ä-b", ""],
)
def test_what_is_no_name_of_a_bucket(name: str) -> None:
    assert not is_bucket_name(name)
