#!/bin/sh
systemctl stop "$1"
sleep 1
systemctl start "$1"
