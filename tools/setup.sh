# Sourced by tools/demo and tests/run: the Debian packages that halfulp needs, by use, and how they come to be there.
#   . tools/setup.sh && halfulp_install build tests

declare -A halfulp_packages=(
  [build]="cmake ninja-build g++ libfmt-dev nlohmann-json3-dev libcli11-dev libtbb-dev libhwy-dev libeigen3-dev
         libtomlplusplus-dev libjs-chart.js"
  # clang-14 and its runtime fuzz; MPFR and Random123 are oracles; Python compares with ml_dtypes and drives ptxas and
  # Chromium, which opens the pages of `halfulp report`.
  [tests]="libgtest-dev libbenchmark-dev clang-14 libclang-rt-14-dev clang-format-14 libmpfr-dev librandom123-dev
           python3-venv chromium"
  [tidy]="clang-tidy-14"
)

halfulp_missing() {
  local package
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
  done
}

# Installs what is missing of the named uses. Without root it prints the one line that an administrator runs, and ends
# the program with 4. On a system without dpkg the packages are the user's business.
halfulp_install() {
  local use wanted=() missing=() root=()
  command -v dpkg-query >/dev/null || return 0
  for use in "$@"; do wanted+=(${halfulp_packages[$use]}); done
  missing=($(halfulp_missing "${wanted[@]}"))
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    sudo -n true 2>/dev/null || {
      echo "Packages are missing, and installing them needs root. Run this, then try again:" >&2
      echo "  sudo apt-get update && sudo apt-get install --no-install-recommends ${missing[*]}" >&2
      exit 4
    }
    root=(sudo -n)
  fi
  echo "Installing ${missing[*]} ..." >&2
  halfulp_apt_get update && halfulp_apt_get install --no-install-recommends "${missing[@]}" || {
    echo "apt-get could not install ${missing[*]}; see above" >&2
    exit 4
  }
}

halfulp_apt_get() {
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Dpkg::Use-Pty=0 "$@" </dev/null >/dev/null
}
