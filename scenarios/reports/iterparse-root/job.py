"""Turns the export of a health app, one large XML document, into a SQLite database record by record."""

import datetime
import os
import random
import sqlite3
import tempfile
import xml.etree.ElementTree as ElementTree

RECORDS = 350_000


class Export:
    """The file inside of export.zip, decompressed as it is read."""

    def __init__(self):
        self.random = random.Random(5)
        self.rest = b""
        self.parts = self.write()

    def write(self):
        yield b"<?xml version='1.0'?><HealthData locale='en_US'>"
        start = datetime.datetime(2016, 1, 1)
        for number in range(RECORDS):
            at = (start + datetime.timedelta(seconds=97 * number)).strftime("%Y-%m-%d %H:%M:%S +0000")
            value = self.random.randrange(400, 1900) / 10
            yield (
                f"<Record type='HKQuantityTypeIdentifierHeartRate' sourceName='Watch of {number % 3}' "
                f"sourceVersion='5.{number % 9}' device='HKDevice: 0x2837{number % 50}, name:Watch' unit='count/min' "
                f"creationDate='{at}' startDate='{at}' endDate='{at}' value='{value}'>"
                f"<MetadataEntry key='HKMetadataKeyHeartRateMotionContext' value='{number % 3}'/></Record>"
            ).encode()
        yield b"</HealthData>"

    def read(self, size):
        while len(self.rest) < size and (part := next(self.parts, None)) is not None:
            self.rest += part
        found, self.rest = self.rest[:size], self.rest[size:]
        return found


def seconds(text):
    return int(datetime.datetime.strptime(text, "%Y-%m-%d %H:%M:%S %z").timestamp())


def find_all_tags(file, tags):
    for _, element in ElementTree.iterparse(file, events=("end",)):
        if element.tag in tags:
            yield element


def convert(file, database):
    database.execute("CREATE TABLE record (type, source, unit, created, start, end, value REAL, metadata)")
    for number, record in enumerate(find_all_tags(file, {"Record", "Workout"})):
        metadata = ";".join(f"{entry.get('key')}={entry.get('value')}" for entry in record)
        kind, source, unit = record.get("type"), record.get("sourceName"), record.get("unit")
        start, end = seconds(record.get("startDate")), seconds(record.get("endDate"))
        created = seconds(record.get("creationDate"))
        row = (kind, source, unit, created, start, end, float(record.get("value")), metadata)
        database.execute("INSERT INTO record VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        if number % 20_000 == 0:
            database.commit()
            print(f"{number} records, the last of {record.get('endDate')}", flush=True)
    database.commit()


def main():
    with tempfile.TemporaryDirectory() as folder:
        database = sqlite3.connect(os.path.join(folder, "healthkit.db"))
        database.execute("PRAGMA synchronous=OFF")
        convert(Export(), database)
        print(database.execute("SELECT count(*), avg(value) FROM record").fetchone())
        database.close()


if __name__ == "__main__":
    main()
