pytest_plugins = ["halfulp.certify.plugin"]
