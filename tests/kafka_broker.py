"""Kafka's own broker, from Maven Central: one node in KRaft mode on 127.0.0.1.

Maven fetches it once into ``build/``; it runs on Java 17 or newer, and keeps what it is given in a
folder, so that it can be killed and started again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import confluent_kafka
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.kafka_cluster import SILENT, Cluster

POM = Path(__file__).with_name("kafka_broker.xml")
USER, PASSWORD = "reader", "open-sesame-4711"
# Small and quick to start; what is deleted is gone at once.
PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller},LOGIN://127.0.0.1:{login}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGIN:SASL_PLAINTEXT
controller.listener.names=CONTROLLER
listener.name.login.sasl.enabled.mechanisms=PLAIN
listener.name.login.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule \
  required user_{user}="{password}";
log.dirs={folder}/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
file.delete.delay.ms=0
"""


class BrokerMissingError(Exception):
    """There is no Java or no Maven, or Maven cannot reach its repository."""


def jars() -> Path:
    """Return the folder of the broker's jars; Maven fills it the first time."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            raise BrokerMissingError(f"{program} is not installed")
    version = hashlib.sha256(POM.read_bytes()).hexdigest()[:12]
    folder = POM.parents[1] / "build" / f"kafka-{version}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(exist_ok=True)
    aside = tempfile.mkdtemp(prefix="kafka-", dir=folder.parent)
    done = subprocess.run(
        ["mvn", "-q", "-B", "-f", str(POM), "dependency:copy-dependencies",
         f"-DoutputDirectory={aside}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        shutil.rmtree(aside)
        raise BrokerMissingError(f"Maven cannot fetch Kafka: {done.stdout[-300:]}")
    try:
        Path(aside).rename(folder)
    except OSError:  # another process was quicker
        shutil.rmtree(aside)
    return folder


def free_ports(n_ports: int) -> list[int]:
    """Return ports of 127.0.0.1 that nobody uses."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n_ports)]
    found = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return found


class Broker(Cluster):
    """A broker that is its own controller; it answers once it is made.

    Parameters
    ----------
    folder : Path
        Where it keeps everything; must be there and empty.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        port, controller, login = free_ports(3)
        self.address = f"127.0.0.1:{port}"
        self.login_address = f"127.0.0.1:{login}"  # where `USER` needs `PASSWORD`
        self._java = ["java", "-Xmx384m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars()}/*"]
        self._properties = folder / "server.properties"
        self._properties.write_text(
            PROPERTIES.format(
                port=port, controller=controller, login=login, folder=folder, user=USER,
                password=PASSWORD,
            )
        )  # fmt: skip
        storage = [*self._java, "kafka.tools.StorageTool"]
        made = subprocess.run([*storage, "random-uuid"], capture_output=True, text=True, check=True)
        self.cluster_id = made.stdout.strip().splitlines()[-1]
        subprocess.run(
            [*storage, "format", "--standalone", "-t", self.cluster_id, "-c", self._properties],
            capture_output=True,
            check=True,
        )
        self.admin = AdminClient({"bootstrap.servers": self.address}, logger=SILENT)
        self.begin()
        self.wait()

    def begin(self) -> None:
        """Start it, without waiting until it answers."""
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._java, "kafka.Kafka", str(self._properties)],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "LC_ALL": "C"},
            )

    def wait(self, seconds: float = 60) -> None:
        """Wait until it answers."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                self.admin.list_topics(timeout=1)
                return
            except confluent_kafka.KafkaException:
                log = (self._folder / "log").read_text(errors="replace")[-2000:]
                assert self._process.poll() is None, log
                assert time.monotonic() < deadline, log

    def kill(self) -> None:
        """End it as a power cut would."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Ask it to end, and wait until it has."""
        self.signal(signal.SIGTERM)
        self._process.wait()

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def start(self) -> None:
        """Start it again, and wait until it answers."""
        self.begin()
        self.wait()

    def make_topic(self, topic: str, n_partitions: int = 1) -> str:
        """Make a topic and return its address."""
        self.admin.create_topics([NewTopic(topic, n_partitions)])[topic].result(30)
        return self.url(topic)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic, and wait until it is gone."""
        self.admin.delete_topics([topic])[topic].result(30)
        while topic in self.admin.list_topics(timeout=10).topics:
            time.sleep(0.05)

    def add_partitions(self, topic: str, n_partitions: int) -> None:
        """Let a topic have so many partitions."""
        self.admin.create_partitions([NewPartitions(topic, n_partitions)])[topic].result(30)

    def forget(self, topic: str, before: int) -> None:
        """Delete the messages of partition 0 before an offset, as retention does."""
        place = TopicPartition(topic, 0, before)
        for answer in self.admin.delete_records([place]).values():
            answer.result(30)

    def close(self) -> None:
        """End it."""
        if self._process.poll() is None:
            self.kill()
