from ipaddress import ip_address

import pytest

from config.addresses import AddressRefused, Guard, NameNotResolved, is_public, parse_networks

PRIVATE = [
    "0.0.0.0",
    "0.0.0.1",
    "10.0.0.1",
    "100.64.0.1",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.9",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:a00:1::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd12::1",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "4000::1",
]
PUBLIC = [
    "8.8.8.8",
    "93.184.216.34",
    "100.63.255.255",
    "100.128.0.1",
    "172.32.0.1",
    "2606:4700::1111",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
    "2002:808:808::1",
]


@pytest.mark.parametrize("text", PRIVATE)
def test_what_is_not_global_is_refused(text):
    assert not is_public(ip_address(text))


@pytest.mark.parametrize("text", PUBLIC)
def test_what_is_global_passes(text):
    assert is_public(ip_address(text))


def guard(*answers, allowed=""):
    return Guard(allowed=parse_networks(allowed), resolver=lambda host, port: list(answers))


def test_one_private_address_among_public_ones_refuses_the_name():
    with pytest.raises(AddressRefused):
        guard("8.8.8.8", "10.0.0.1").addresses("mixed.test", 443)


def test_an_opened_address_is_used_alone():
    assert guard("10.0.0.1", "8.8.8.8", "10.0.0.2", allowed="10.0.0.1/32:443").addresses("mixed.test", 443) == ["10.0.0.1"]
    with pytest.raises(AddressRefused):
        guard("10.0.0.1", allowed="10.0.0.1/32:443").addresses("kb.test", 80)


def test_a_mapped_address_is_opened_by_its_ipv4_network():
    found = guard(allowed="127.0.0.1/32:80").addresses("::ffff:127.0.0.1", 80)
    assert [ip_address(text) for text in found] == [ip_address("::ffff:127.0.0.1")]


def test_local_names_are_never_asked_of_a_name_server():
    for name in ("localhost", "LOCALHOST", "localhost.", "kb.localhost"):
        with pytest.raises(AddressRefused):
            guard("8.8.8.8").addresses(name, 80)


@pytest.mark.parametrize("host", ["", "[]", "fe80::1%eth0", "kb.test%lo"])
def test_hosts_that_name_no_host(host):
    with pytest.raises(AddressRefused):
        guard("8.8.8.8").addresses(host, 80)


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_ports_out_of_range(port):
    with pytest.raises(AddressRefused, match="65535"):
        guard("8.8.8.8").addresses("kb.test", port)


def test_a_name_without_address_and_an_answer_that_is_none():
    with pytest.raises(NameNotResolved) as caught:
        guard().addresses("kb.test", 80)
    assert not caught.value.transient
    with pytest.raises(AddressRefused, match="not an address"):
        guard("elsewhere").addresses("kb.test", 80)


def test_networks_are_read():
    first, second, third = parse_networks(" 127.0.0.1/32:8001, 9000-9002 ,[::1]/128:*,")
    assert (str(first.network), first.ports) == ("127.0.0.1/32", (8001, 8001))
    assert (str(second.network), second.ports) == ("127.0.0.1/32", (9000, 9002))
    assert (str(third.network), third.ports) == ("::1/128", (1, 65535))
    assert parse_networks("") == ()


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1/32",
        "8001",
        "127.0.0.1/32:",
        "127.0.0.1/32:x",
        "127.0.0.1/33:1",
        "10.0.0.1/8:1",
        "::1/128:1",
        "host:80",
        "127.0.0.1/32:0",
        "[::1]:9-1",
    ],
)
def test_networks_that_cannot_be_read_are_named(text):
    with pytest.raises(ValueError, match=r"must look like|appear|host bits|ports|permitted"):
        parse_networks(text)
