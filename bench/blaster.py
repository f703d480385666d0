#!/usr/bin/env python3
"""Fills a link with UDP datagrams of a bucket's length, 44 in a call.

  bench/blaster.py send PEER SECONDS        fills the link to a host
  bench/blaster.py receive OWN SECONDS      prints the bits per second that come, with all headers

A datagram of 1,472 bytes counts as 1,514, as the kernel's traffic control counts it.
"""
import socket
import sys
import time

DATAGRAM, FRAME, BURST, PORT = 1472, 1514, 44, 7777
UDP_SEGMENT, UDP_GRO = 103, 104


def receive(own, seconds):
    come = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    come.setsockopt(socket.SOL_UDP, UDP_GRO, 1)
    come.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    come.bind((own, PORT))
    buffer = bytearray(1 << 16)
    come.recv_into(buffer)
    total, begun = 0, time.monotonic()
    while (now := time.monotonic()) - begun < seconds:
        total += come.recv_into(buffer)
    print(f"{total / DATAGRAM * FRAME * 8 / (now - begun):.0f}")


def send(peer, seconds):
    go = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    go.setsockopt(socket.SOL_UDP, UDP_SEGMENT, DATAGRAM)
    burst, end = bytes(BURST * DATAGRAM), time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            go.sendto(burst, (peer, PORT))
        except OSError:  # the receiver has not started, or the queue is full
            time.sleep(0.001)


{"send": send, "receive": receive}[sys.argv[1]](sys.argv[2], float(sys.argv[3]))
