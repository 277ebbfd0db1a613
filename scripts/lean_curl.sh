#!/usr/bin/env bash
# lean_curl.sh: builds the distribution's own libcurl from its source package for what fullbore asks of it (HTTP/1.1,
# with TLS or without), and prints the directory of the library. In a wheel it takes the place of the distribution's, which
# speaks 25 protocols: with LDAP, Kerberos, SSH and RTMP come a second TLS and twenty libraries more, of 4 MB.
source "$(dirname "$0")/lib.sh"

cd "$root"
version="$(dpkg-query -W -f '${source:Version}' libcurl4-openssl-dev)" ||
  die "the library to build anew is unknown" "scripts/setup.sh build"
place="$root/build/curl/$version"
library="$place/lib/.libs"

# fetch: the source into $place. The machine's own list of sources, which seldom names those of source packages, stays.
fetch() {
  mkdir -p "$place/apt/lists/partial"
  cat /etc/apt/sources.list.d/*.sources 2>/dev/null | sed 's/^Types: deb$/Types: deb-src/' >"$place/apt/apt.sources" || true
  cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null | sed -n 's/^deb /deb-src /p' >"$place/apt/apt.list" || true
  local apt=(apt-get -qq -o APT::Sandbox::User=root -o Dir::Etc::SourceList=/dev/null
    -o "Dir::Etc::SourceParts=$place/apt" -o "Dir::State::Lists=$place/apt/lists")
  "${apt[@]}" update >&2 || true # another's source that is away is no matter, if this one is found
  cd "$place"
  # An archive keeps the newest of a distribution only, which may be newer than what is installed.
  "${apt[@]}" source "curl=$version" >&2 || "${apt[@]}" source curl >&2
  mv "$place"/curl-*/* "$place"
}

# compile: hardened as the distribution's own, and with its places of certificates.
compile() {
  cd "$place"
  # The version of its symbols is 4 where it speaks by OpenSSL; a patch of the distribution makes it that of GnuTLS.
  sed -i 's/FLAVOUR@3$/FLAVOUR@4/' lib/libcurl.vers.in
  eval "$(DEB_BUILD_MAINT_OPTIONS=hardening=+bindnow dpkg-buildflags --export=sh)"
  ./configure --disable-static --enable-versioned-symbols --enable-threaded-resolver --with-openssl --with-zlib \
    --with-ca-bundle=/etc/ssl/certs/ca-certificates.crt --with-ca-path=/etc/ssl/certs \
    --without-{nghttp2,brotli,gssapi,libidn2,libpsl,librtmp,libssh2,zstd} \
    --disable-{dict,file,ftp,gopher,imap,ldap,ldaps,mqtt,pop3,rtsp,smb,smtp,telnet,tftp} \
    --disable-{manual,alt-svc,hsts,ntlm,unix-sockets} >configure.log &&
    make -C lib -j "${JOBS:-$(nproc)}" >make.log
}

if [ ! -f "$library/libcurl.so.4" ]; then
  rm -rf "$place"
  (fetch) || die "the source of curl $version cannot be fetched" "does apt-get reach the distribution's packages?"
  (compile) || die "curl $version cannot be built" "see the logs in $place"
fi
printf '%s\n' "$library"
