"""LibreOffice, which writes tables for tests."""

import shutil
import subprocess

import pytest

needs_office = pytest.mark.skipif(
    shutil.which("soffice") is None, reason="LibreOffice (soffice) is not installed"
)
PROFILE = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Setup/L10N">
<prop oor:name="ooSetupSystemLocale" oor:op="fuse"><value>{locale}</value></prop>
</item>
</oor:items>
"""
US_CSV = "Text - txt - csv (StarCalc):44,34,76,1,,1033,false,true"
"""The filter that reads CSV as Americans write it."""


def convert(path, to, locale, suffix):
    """Convert a table with LibreOffice in a locale such as de-DE, and return the new path.

    The format `to` is as for its option ``--convert-to``.
    """
    profile = path.parent / f"office-{locale}"
    (profile / "user").mkdir(parents=True, exist_ok=True)
    (profile / "user" / "registrymodifications.xcu").write_text(PROFILE.format(locale=locale))
    folder = path.parent / "converted"
    command = ["soffice", f"-env:UserInstallation={profile.as_uri()}", "--headless"]
    command += [f"--infilter={US_CSV}"] if path.suffix == ".csv" else []
    subprocess.run(
        [*command, "--convert-to", to, "--outdir", str(folder), str(path)],
        check=True,
        capture_output=True,
        timeout=120,
    )
    return (folder / path.name).with_suffix(suffix)
