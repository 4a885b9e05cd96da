"""What `ansible` prints becomes the entry of one server, or an error that shows it."""

from __future__ import annotations

import pytest

from tests.real.check import CheckError, parse


def test_the_entry_of_the_server_is_found():
    printed = 'localhost | SUCCESS => {\n    "changed": false,\n    "servers": [{"verdict": "idle => fine"}]\n}\n'
    assert parse(printed) == {"verdict": "idle => fine"}


@pytest.mark.parametrize(
    "printed",
    [
        'localhost | FAILED! => {"msg": "no such option"}',
        "",
        'localhost | SUCCESS => {"servers": []}',
        "localhost | SUCCESS => {",
    ],
    ids=["a failure", "nothing", "no server", "half an answer"],
)
def test_anything_else_is_an_error_that_shows_what_was_printed(printed):
    with pytest.raises(CheckError) as error:
        parse(printed, "from stderr")
    assert printed in str(error.value)
