#!/usr/bin/env bash
# Write to standard output, as a tar, an image to stand in for AWS's Lambda base image where that one cannot be
# pulled: this machine's own Python where Lambda has it, what AWS's image brings along, the emulator, a shell.
#
#   base-image.sh PYTHON EMULATOR > image.tar
set -euo pipefail

python=$1
emulator=$2
here=$(cd "$(dirname "$0")" && pwd)
version=$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
prefix=$("$python" -c 'import sys; print(sys.base_prefix)')

image=$(mktemp -d)
trap 'rm -rf "$image"' EXIT
mkdir -p "$image"/{bin,etc,opt,root,tmp,usr/local/bin,var/lang/bin,var/lang/lib,var/runtime,var/task}
chmod 1777 "$image/tmp"

# A shell: the entry points below are scripts, and SAM's image build runs mv and chmod.
cp "$(command -v busybox)" "$image/bin/busybox"
for name in cat chmod cp env ls mkdir mv rm sh sleep; do ln -s busybox "$image/bin/$name"; done
echo 'root:x:0:0:root:/root:/bin/sh' > "$image/etc/passwd"

# The interpreter, the standard library without its tests and its windows, and the libraries that both are linked
# to. Wheels are linked to the last few, and to nothing else beyond their own.
cp "$prefix/bin/$version" "$image/var/lang/bin/$version"
ln -s "$version" "$image/var/lang/bin/python3"
cp -P "$prefix"/lib/libpython3*.so* "$image/var/lang/lib" 2> /dev/null || true
tar -C "$prefix/lib" --create --exclude=site-packages --exclude=dist-packages --exclude=__pycache__ --exclude=test \
  --exclude=idlelib --exclude=tkinter --exclude='_tkinter*' --exclude=ensurepip --exclude='config-*' "$version" |
  tar -C "$image/var/lang/lib" --extract
libc=$(ldd "$prefix/bin/$version" | awk '$1 == "libc.so.6" { print $3 }')
{
  ldd "$prefix/bin/$version" "$image/var/lang/lib/$version"/lib-dynload/*.so | grep -o '/[^ :]*\.so[^ :]*' | grep -v "^$image" |
    grep -v "^$prefix/lib/libpython"
  for name in libstdc++.so.6 libgcc_s.so.1 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 libutil.so.1 libresolv.so.2; do
    echo "$(dirname "$libc")/$name"
  done
} | sort -u | while read -r library; do
  # The program loader's path is fixed; everything else is found through LD_LIBRARY_PATH.
  case $library in
    */ld-linux*) mkdir -p "$image$(dirname "$library")" && cp -L "$library" "$image$library" ;;
    *) cp -L "$library" "$image/var/lang/lib" ;;
  esac
done

"$python" -m pip install --quiet --disable-pip-version-check --no-compile \
  --requirement "$here/base-image-requirements.txt" --target "$image/var/runtime" >&2
cp "$emulator" "$image/usr/local/bin/aws-lambda-rie"
chmod +x "$image/usr/local/bin/aws-lambda-rie"

# As in AWS's image: the runtime, and an entry point that puts the emulator around it where no Lambda is.
cat > "$image/var/runtime/bootstrap" << SCRIPT
#!/bin/sh
export AWS_EXECUTION_ENV=AWS_Lambda_$version
exec /var/lang/bin/python3 -m awslambdaric "\$_HANDLER"
SCRIPT
cat > "$image/lambda-entrypoint.sh" << 'SCRIPT'
#!/bin/sh
export _HANDLER="$1"
[ -z "$AWS_LAMBDA_RUNTIME_API" ] || exec /var/runtime/bootstrap
trap exit TERM # the emulator would let Docker wait
/usr/local/bin/aws-lambda-rie /var/runtime/bootstrap &
wait
SCRIPT
chmod +x "$image/var/runtime/bootstrap" "$image/lambda-entrypoint.sh"

tar -C "$image" --create .
