#!/bin/sh
# Makes the certificates in this folder, valid for a hundred years. The key of the CA is thrown away.
set -eu
cd "$(dirname "$0")"
trap 'rm -f ca.key leaf.key leaf.csr leaf.ext' EXIT

key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1"; }

leaf() { # file, subjectAltName
  key leaf.key
  openssl req -new -key leaf.key -subj "/CN=$1" -out leaf.csr
  printf '%s\n' "subjectAltName=$2" 'basicConstraints=CA:FALSE' 'keyUsage=digitalSignature' \
    'extendedKeyUsage=serverAuth' 'subjectKeyIdentifier=hash' 'authorityKeyIdentifier=keyid' > leaf.ext
  openssl x509 -req -in leaf.csr -CA ca.pem -CAkey ca.key -days 36500 -extfile leaf.ext | cat - leaf.key > "$1.pem"
}

key ca.key
openssl req -x509 -new -key ca.key -subj '/CN=a CA for tests' -days 36500 -out ca.pem \
  -addext 'keyUsage=critical,keyCertSign,cRLSign'
leaf right-name IP:127.0.0.1
leaf wrong-name DNS:elsewhere.example
