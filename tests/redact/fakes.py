"""Realistic secrets in the shapes in which sessions contain them, made here so that none looks
real.

Each is a text and the secret in it. `tests/redact/test_fakes.py` wants all of them replaced.
"""

from __future__ import annotations

import random
import string
from base64 import b64encode
from urllib.parse import quote

from tests.rows import table

_RANDOM = random.Random(9)
_HEX = "0123456789abcdef"
_LETTERS = string.ascii_letters + string.digits


def _some(length: int, chars: str = _LETTERS) -> str:
    return "".join(_RANDOM.choices(chars, k=length - 4)) + "e7c3"


def _hex(length: int) -> str:
    return "".join(_RANDOM.choices(_HEX, k=length - 4)) + "e7c3"


def _upper(length: int) -> str:
    return "".join(_RANDOM.choices(string.ascii_uppercase + string.digits, k=length - 2)) + "Q7"


def _word() -> str:
    """A password as people choose it."""
    return "".join(_RANDOM.choices(string.ascii_lowercase, k=7)) + _RANDOM.choice(
        ["42!", "7", "-19", "$x9", "_2024"]
    )


def _uuid() -> str:
    return "-".join((_hex(8), _hex(8)[:4], _hex(8)[4:], _hex(8)[4:], _hex(12)))


def _plain() -> str:
    """A password without digits."""
    return "".join(_RANDOM.choices(string.ascii_lowercase, k=6)) + "fish"


def _login() -> str:
    return b64encode(f"ada:{_word()}".encode()).decode()


TOKENS = [
    "A3-" + "-".join((_upper(6), _upper(11), _upper(5), _upper(5), _upper(5))),
    "ops" + "_ey" + "J" + _some(260),
    "p8" + "e-" + _some(32),
    "LT" + "AI" + _some(20),
    "AK" + "Cp" + _some(69),
    "cm" + "Vmd" + _some(59),
    "aut"
    + "hress_"
    + _some(12).lower()
    + "."
    + _some(6).lower()
    + ".acc_"
    + _some(16).lower()
    + "."
    + _some(40),
    "A3" + "TX" + _upper(16),
    "abc8" + "Q~" + _some(32),
    "4b" + "1d" + _some(38),
    "CLO" + "JARS_" + _hex(60),
    "v1" + ".0-" + _hex(24) + "-" + _hex(146),
    "dn" + "key-" + _some(26) + "-" + _some(52),
    "dp" + ".pt." + _some(43),
    "sl" + "." + _some(135),
    "duf" + "fel_test_" + _some(43),
    "dt0" + "c01." + _upper(24) + "." + _upper(64),
    "EZ" + "AK" + _some(54),
    "EA" + "AC" + _some(110),
    "FLW" + "SECK_TEST-" + _hex(32) + "-X",
    "fo" + "1_" + _some(43),
    "fm" + "2_" + _some(110),
    "fi" + "o-u-" + _some(64),
    "glf" + "fct-" + _some(20),
    "GR13" + "48941" + _some(20),
    "pat" + "." + _some(22) + "." + _some(24) + "." + _some(20),
    _some(14) + ".at" + "lasv1." + _some(64),
    "HRKU" + "-AA" + _some(58),
    "api" + "_org_" + _some(34),
    "ic" + "o-" + _some(32),
    "s-s4" + "t2ud-" + _hex(64),
    _hex(32) + "-us" + "21",
    "ke" + "y-" + _hex(32),
    "pk" + ".ey" + "J" + _some(57) + "." + _some(22),
    _some(6) + "_" + _some(29) + "_m" + "mk",
    "NR" + "AK-" + _upper(27),
    "AP" + "I-" + _upper(26),
    "sha" + "256~" + _some(43),
    "acc" + "ess-sandbox-" + _uuid(),
    "psc" + "ale_tkn_" + _some(43),
    "pn" + "u_" + _some(36),
    "pu" + "l-" + _hex(40),
    "rd" + "me_" + _some(70).lower(),
    "tk" + "-us-" + _some(48),
    "xke" + "ysib-" + _hex(64) + "-" + _some(16),
    "snt" + "rys_ey" + "JpYXQiO" + _some(80) + "_" + _some(43),
    "snt" + "ryu_" + _hex(64),
    "sm" + "_pat_" + _some(16),
    "shi" + "ppo_live_" + _hex(40),
    "sg" + "p_" + _hex(40),
    "sq0" + "atp-" + _some(22),
    "sk" + "_prod_" + _some(24),
    "tf" + "p_" + _some(59),
    "hv" + "b." + _some(140),
    "AQ" + "VN" + _some(36),
    "nv" + "api-" + _some(60),
    "CC" + "IPAT_" + _some(22) + "_" + _hex(40),
    "ts" + "key-auth-" + _some(12) + "-" + _some(32),
    "nf" + "p_" + _some(36),
    "pcs" + "k_" + _some(60),
    "ls" + "v2_pt_" + _hex(32) + "_" + _hex(10),
    "tv" + "ly-" + _some(32),
    "CF" + "PAT-" + _some(43),
    "sec" + "ret_" + _some(43),
    "M" + _some(23) + "." + _some(6) + "." + _some(38),
    "AT" + "BB" + _some(32),
    "AT" + "CTT3" + _some(160),
    "hv" + "r." + _some(90),
    "gl" + "rtr-" + _some(20),
    "tgp" + "_v1_" + _some(43),
    "AB" + "SK" + _some(110),
    "amzn" + ".mws." + _uuid(),
    "mdb" + "_sa_sk_" + _some(40),
    "ph" + "x_" + _some(43),
    "xsm" + "tpsib-" + _hex(64) + "-" + _some(16),
    "sk" + "-lf-" + _uuid(),
    "lin" + "_oauth_" + _hex(64),
    "sn" + "yk_uat." + _some(60),
    "sq" + "b_" + _hex(40),
    "CCI" + "PRJ_" + _some(22) + "_" + _hex(40),
    "wan" + "db_v1_" + _some(70),
    "hooks.zapier.com/hooks/" + "catch/123456/" + _some(8),
    "se" + "ss-" + _some(40),
    "na" + "pi_" + _some(64).lower(),
    "sl" + ".u." + _some(140),
    "bk" + "ct_" + _some(40),
    "vc" + "p_" + _some(56),
    "oy" + "2" + _some(43).lower(),
    "f" + "c-" + _hex(32),
    "e2" + "b_" + _hex(40),
    "ji" + "na_" + _some(64),
    "bb" + "_live_" + _some(27),
    "sk" + "_" + _hex(48),
    "st" + "." + _hex(24) + "." + _hex(32) + "." + _hex(32),
    "EA" + "AB" + _some(120),
    "Z" + "XlK" + b64encode(b"hbGciOiJIUzI1NiJ9." + _some(60).encode()).decode(),
]
"""Tokens of vendors, each known by its form."""

SHAPES = [
    "PGPASSWORD={} psql -h db -U app",
    "MYSQL_PWD={} mysqldump shop",
    "export DB_PASS='{}'",
    "REDIS_PASSWORD={}",
    "ansible_ssh_pass: {}",
    "ansible_become_password={}",
    "  db_password: {}",
    "password = {}",
    "passwd={}",
    "spring.datasource.password={}",
    "smtp_pass: '{}'",
    'password="{}"',
    "    'password' => '{}',",
    '  "dbPassword": "{}",',
    "<password>{}</password>",
    "<ns:dbPassword>{}</ns:dbPassword>",
    '<add key="ClearTextPassword" value="{}" />',
    '<property name="password" value="{}"/>',
    "define('DB_PASSWORD', '{}');",
    'define( "AUTH_KEY_PASS", "{}" );',
    "os.environ['DB_PASSWORD'] = '{}'",
    'ENV["SMTP_PASSWORD"] = "{}"',
    '$env:DB_PASSWORD = "{}"',
    "setx DB_PASSWORD {}",
    "ENV DB_PASSWORD {}",
    "set -x DB_PASSWORD {}",
    "tool login --user ada --password {}",
    "tool login --password={}",
    "mysql -u root --password='{}' shop",
    "gpg --batch --passphrase {} -d a.gpg",
    "keytool -list -storepass {} -keystore a.jks",
    "sshpass -p '{}' ssh a@b",
    "sshpass -p{} ssh a@b",
    "redis-cli -h db -a {} ping",
    "mongosh -u root -p {} admin",
    "ldapsearch -x -D cn=admin -w {} -b dc=a",
    "openssl rsa -passin pass:{} -in a.pem",
    "zip -P {} a.zip b",
    "7z x -p{} a.7z",
    "smbclient //a/b -U ada%{}",
    "htpasswd -b .htpasswd ada {}",
    "echo 'ada:{}' | chpasswd",
    "docker login -u ada -p {} registry.example.org",
    "http -a ada:{} example.org",
    "sqlcmd -S db -U sa -P {}",
    "CREATE USER ada WITH PASSWORD '{}';",
    "CREATE USER 'ada'@'%' IDENTIFIED BY '{}';",
    "requirepass {}",
    "machine example.org\n  login ada\n  password {}",
    "db.example.org:5432:shop:ada:{}",
    "url = jdbc:postgresql://db/shop?user=ada&password={}",
    "Server=db;Database=shop;User Id=sa;Password={};",
    "amqp://ada:{}@mq:5672/",
    "https://x.org/login?next=%2F&password%3D{}",
    "config=%7B%22password%22%3A%22{}%22%7D",
    "&quot;password&quot;:&quot;{}&quot;",
    'The server said: {{\\"password\\":\\"{}\\"}}',
    "X-Db-Password: {}",
    "wpa_passphrase={}",
    "<Password><![CDATA[{}]]></Password>",
    '<password encrypted="false">{}</password>',
    "rar x -p{} a.rar",
    "ipmitool -H bmc -U ada -P {} power status",
    "xfreerdp /u:ada /p:{} /v:host",
    "impacket-psexec corp/ada:{}@10.0.0.1",
    "lftp -u ada,{} ftp.example.org",
    "winexe -U ada%{} //host cmd",
    "echo '{}' | kinit ada",
    "echo '{}' | docker login -u ada --password-stdin",
    "echo -n '{}' | cryptsetup luksOpen /dev/sda1 a -",
]
"""Shapes in which passwords stand, `{}` for the password."""

RANDOM_SHAPES = [
    "tool deploy --token {} --yes",
    "tool --api-key={} list",
    "master.key: {}",
    "rails_master_key={}",
    "encryption_key: '{}'",
    'signingKey = "{}"',
    "SECRET_KEY_BASE={}",
    "JWT_SECRET={}",
    "session_secret: {}",
    "<apiKey>{}</apiKey>",
    '<string name="google_api_key">{}</string>',
    "<key>ApiToken</key>\n\t<string>{}</string>",
    "X-Vault-Token: {}",
    "DD-API-KEY: {}",
    "Ocp-Apim-Subscription-Key: {}",
    "vault login {}",
    "//registry.example.org/:_authToken={}",
    "Endpoint=sb://x.example.org/;SharedAccessKeyName=a;SharedAccessKey={}",
    "cloudflare_global = {}",
    "ALGOLIA_ADMIN: {}",
    "datadog.client = '{}'",
    "heroku_deploy: {}",
    "sentry_upload={}",
    "access_token%3D{}%26scope%3Dall",
    '"identitytoken": "{}"',
    "HMAC_KEY={}",
    "aes_key: {}",
    "fernet_key = {}",
    "consumer_key={}",
    "JSESSIONID={}",
    "curl -b connect.sid={} example.org",
    "ngrok config add-authtoken {}",
]
"""Shapes in which keys stand, `{}` for the key."""

_WIREGUARD = b64encode(bytes(_RANDOM.randrange(256) for _ in range(32))).decode()
_HASHES = [
    "$6$" + _some(12) + "$" + _some(86),
    "$apr1$" + _some(8) + "$" + _some(22),
    "$2y$" + "10$" + _some(53),
    "$y$j9T$" + _some(22) + "$" + _some(43),
    "{SHA}" + b64encode(_some(20).encode()).decode(),
    "$argon2id$v=19$m=65536,t=3,p=4$" + _some(22) + "$" + _some(43),
]


def _fakes() -> list[tuple[str, str]]:
    found = [(f"the token {token} works", token) for token in TOKENS]
    for shape in SHAPES:
        word = _word()
        found.append(
            (
                shape.format(quote(word) if "%22" in shape or "%3D" in shape else word),
                word.rstrip("!$")[:9],
            )
        )
    for shape in RANDOM_SHAPES:
        key = _hex(32)
        found.append((shape.format(key), key))
    found += [(f"ada:{each}:19000:0:99999:7:::", each) for each in _HASHES]
    login, other = _login(), _login()
    found += [
        (f'{{"auths": {{"x.org": {{"auth": "{login}"}}}}}}', login),
        (f"machine x.org login ada password {other}", other),
        (f"PrivateKey = {_WIREGUARD}", _WIREGUARD),
    ]
    for shape in (
        "PGPASSWORD={}",
        "ansible_ssh_pass: {}",
        "password: {}",
        "<password>{}</password>",
        'password = "{}"',
        "ansible_become_pass={}",
        "tool --password {}",
        "wget --password={} https://x.org",
        "spring.datasource.password={}",
        "password = {}",
        "Server=db;Password={};",
        "db.example.org:5432:*:ada:{}",
        ":password: {}",
        "-Dnexus.password={}",
    ):
        word = _plain()
        found.append((shape.format(word), word))
    for shape in table("redact/shapes.json")["passwords"]:
        word = _word()
        found.append((shape.replace("<V>", word), word.rstrip("!$")[:9]))
    found += [(text, key) for key, text in _MORE_TOKENS]
    phrase = "witch collapse practice feed shame open despair creek road again ice least"
    for name, mark in (("keys", "<K>"), ("codes", "<C>"), ("phrases", "<P>")):
        for shape in table("redact/shapes.json")[name]:
            code = str(_RANDOM.randrange(10**5, 10**6))
            secret = {"keys": _some(32), "codes": code, "phrases": phrase}[name]
            found.append((shape.replace(mark, secret), secret))
    return found


_MORE_TOKENS = [
    (key := f"{_RANDOM.randrange(10**15):015}" + "|" + _some(32), f"app token {key}"),
    (key := "FLW" + "PUBK_TEST-" + "0a1b2c3d" * 4 + "-X", f"key: {key}"),
    (key := "s" + "." + _some(24), f"vault token {key} is valid"),
    (key := "S" + "K" + _hex(32).upper(), f"twilio {key}"),
    (key := "t1" + "." + _some(20) + "." + _some(86), f"iam {key}"),
    (key := _some(44), f"XRAY_REPO = '{key}'"),
    (key := _some(24), f"looker.sdk: {key}"),
    (key := "test_" + _hex(35), f"lob_live={key}"),
    (key := _some(32), f"new-york-times: '{key}'"),
]

FAKES = _fakes()
